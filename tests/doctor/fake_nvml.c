/* NVML for the devices of tests/runtime/fake_cuda.h, in place of libnvidia-ml.so.1: each value is another
 * one, so that a test sees where it went. The declarations follow NVIDIA's nvml.h. */
#include <string.h>

typedef void* Device;
enum { kSuccess = 0, kInvalid = 2, kNotSupported = 3 };
enum { kGraphics = 0, kSm = 1, kMemory = 2 };

static int device;

int nvmlInit_v2(void) { return kSuccess; }
int nvmlSystemGetDriverVersion(char* version, unsigned bytes) {
  strncpy(version, "580.95.05", bytes);
  return kSuccess;
}
int nvmlDeviceGetHandleByUUID(const char* uuid, Device* found) {
  *found = &device;
  return strncmp(uuid, "GPU-", 4) == 0 ? kSuccess : kInvalid;
}
int nvmlDeviceGetClockInfo(Device of, int type, unsigned* mhz) {
  *mhz = of == &device && type == kSm ? 1410 : 2619;
  return kSuccess;
}
int nvmlDeviceGetTemperature(Device of, int sensor, unsigned* celsius) {
  *celsius = 47;
  return of == &device && sensor == 0 ? kSuccess : kInvalid;
}
int nvmlDeviceGetPowerUsage(Device of, unsigned* milliwatts) {
  *milliwatts = 123000;
  return of == &device ? kSuccess : kInvalid;
}
int nvmlDeviceGetEnforcedPowerLimit(Device of, unsigned* milliwatts) {
  *milliwatts = 700000;
  return of == &device ? kSuccess : kInvalid;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(Device of, unsigned long long* reasons) {
  *reasons = 0x4 | 0x2; /* the power cap, and application clocks */
  return of == &device ? kSuccess : kInvalid;
}
int nvmlDeviceGetComputeRunningProcesses_v3(Device of, unsigned* count, void* processes) {
  *count = 3;
  return of == &device && processes != NULL ? kSuccess : kInvalid;
}
int nvmlDeviceGetPersistenceMode(Device of, int* mode) {
  *mode = 1;
  return of == &device ? kSuccess : kInvalid;
}
int nvmlDeviceGetComputeMode(Device of, int* mode) {
  *mode = 3; /* one process alone */
  return of == &device ? kSuccess : kInvalid;
}
int nvmlDeviceGetApplicationsClock(Device of, int type, unsigned* mhz) {
  *mhz = 1755;
  return of == &device && type == kSm ? kSuccess : kInvalid;
}
int nvmlDeviceGetMaxClockInfo(Device of, int type, unsigned* mhz) {
  *mhz = 1980;
  return of == &device && type == kSm ? kSuccess : kInvalid;
}
int nvmlDeviceGetTotalEccErrors(Device of, int error_type, int counter_type, unsigned long long* errors) {
  *errors = error_type == 1 && counter_type == 0 ? 5 : 1000; /* uncorrected, since the driver was loaded */
  return of == &device ? kSuccess : kInvalid;
}
int nvmlDeviceGetRemappedRows(Device of, unsigned* corrected, unsigned* uncorrected, unsigned* pending,
                              unsigned* failed) {
  *corrected = 7;
  *uncorrected = 8;
  *pending = 1;
  *failed = 0;
  return of == &device ? kSuccess : kNotSupported;
}

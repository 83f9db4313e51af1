// What artifacts may use of libc. Only names and versions matter: an artifact is linked against this in place
// of the host's libc, so that linking needs no development files and its demands on a host are known.
void aligned_alloc(void) {}
void dlopen(void) {}
void free(void) {}
void memcmp(void) {}
void memcpy(void) {}
void memmove(void) {}
void memset(void) {}
void snprintf(void) {}
void syscall(void) {}
void vsnprintf(void) {}

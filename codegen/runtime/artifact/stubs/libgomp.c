// A stub of libgomp with the functions that artifacts may use; see libc.c.
void GOMP_barrier(void) {}
void GOMP_parallel(void) {}
void omp_get_max_threads(void) {}
void omp_get_num_threads(void) {}
void omp_get_thread_num(void) {}

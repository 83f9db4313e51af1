// A stub of libc with the functions that artifacts may use. Only names and versions matter: artifacts are
// linked against this stub in place of the host's libc, so that linking needs no development files and an
// artifact's requirements are known.
void aligned_alloc(void) {}
void calloc(void) {}
void clock_gettime(void) {}
void dlerror(void) {}
void dlopen(void) {}
void dlsym(void) {}
void free(void) {}
void malloc(void) {}
void memcmp(void) {}
void memcpy(void) {}
void memmove(void) {}
void memset(void) {}
void pthread_key_create(void) {}
void pthread_key_delete(void) {}
void pthread_mutex_lock(void) {}
void pthread_mutex_unlock(void) {}
void pthread_setspecific(void) {}
void sem_init(void) {}
void sem_post(void) {}
void sem_trywait(void) {}
void snprintf(void) {}
void strcmp(void) {}
void strlen(void) {}
void strtod(void) {}
void strtof(void) {}
void syscall(void) {}
void vsnprintf(void) {}

// What artifacts may use of the dynamic loader; see libc.c.
void __tls_get_addr(void) {}

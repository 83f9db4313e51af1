// A stub of the dynamic loader with the functions that artifacts may use; see libc.c.
void __tls_get_addr(void) {}

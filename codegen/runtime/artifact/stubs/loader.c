// The part of the dynamic loader that artifacts may use; see libc.c.
void __tls_get_addr(void) {}

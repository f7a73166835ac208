/** Returns whether a host name or address, without a port, is loopback. */
export const isLoopback = (host: string): boolean => /^(127\.[\d.]+|::1|localhost)$/i.test(host);

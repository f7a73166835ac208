/** Whether a name or an address, without a port, is of this machine alone. */
export const isLoopback = (host: string): boolean => /^(127\.[\d.]+|::1|localhost)$/i.test(host);

// A shim that defines nothing: its library is asked for no version.
extern "C" int cuInit(unsigned);
// Refers to the whole library: linkers leave out what nothing refers to.
extern "C" __attribute__((visibility("default"))) int (*const vgpu_linked)(unsigned) = cuInit;

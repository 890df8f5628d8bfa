// What has no version to tell.
extern "C" int cuInit(unsigned);
// Refers to the whole library: linkers leave out what nothing refers to.
extern "C" __attribute__((visibility("default"))) int (*const vgpu_linked)(unsigned) = cuInit;

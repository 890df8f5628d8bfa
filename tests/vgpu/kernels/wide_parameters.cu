// A kernel with more than 4 KiB of parameters, for test_sass_parameters.py.  wide_parameters.fatbin holds it as PTX and as
// machine code: nvcc -fatbin -gencode arch=compute_80,code=[sm_80,compute_80] -compress-mode=size -o wide_parameters.fatbin
// wide_parameters.cu.  PyTorch passes lists of tensors in such structures (TensorListMetadata).
struct Table {
  int values[7000];
};

extern "C" __global__ void look_up(int* out, const Table table, int first) {
  out[threadIdx.x] = table.values[first + threadIdx.x];
}

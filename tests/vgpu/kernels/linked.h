// What linked.cu and linked_functions.cu share.
struct Shape {
  __device__ virtual float area(float x) const = 0;
  float scale;
};
struct Square : Shape {
  __device__ float area(float x) const override;
};
struct Disk : Shape {
  __device__ float area(float x) const override;
};

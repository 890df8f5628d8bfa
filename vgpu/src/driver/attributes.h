// Attributes of the device, numbered as in cuda.h (CUdevice_attribute); the CUDA runtime uses the same numbers.
#pragma once

namespace vgpu {

enum Attribute : int {
  kMaxThreads = 1,
  kMaxThreadsX = 2,
  kMaxBlocksX = 5,
  kSharedOfBlock = 8,
  kConstantBytes = 9,
  kLanesOfWarp = 10,
  kMaxPitch = 11,  // the largest of a copy, in bytes
  kRegistersOfBlock = 12,
  kClockKhz = 13,  // kHz, as kMemoryClockKhz
  kMultiprocessors = 16,
  kMemoryClockKhz = 36,
  kBusWidth = 37,
  kL2Bytes = 38,
  kThreadsOfMultiprocessor = 39,
  kMajor = 75,
  kMinor = 76,
  kSharedOfMultiprocessor = 81,
  kSharedOptIn = 97,
  kTextureAlignment = 14,
  kSurfaceAlignment = 30,
  kTexturePitchAlignment = 51,
  kLinearTextureWidth = 69,
  kPitchedTextureWidth = 70,
  kPitchedTextureHeight = 71,
  kPitchedTexturePitch = 72,
  kBlocksOfMultiprocessor = 106,
  kSharedReserved = 111
};

int attribute(int number);  // its value for this device; 0: not supported
bool is_known_attribute(int number);  // whether it is from 1 to 199, which includes all that CUDA defines

}  // namespace vgpu

// Attributes of the device, numbered as in cuda.h (CUdevice_attribute); the runtime uses the same numbers.
#pragma once

namespace vgpu {

enum Attribute : int {
  kMaxThreads = 1,
  kMaxThreadsX = 2,
  kMaxBlocksX = 5,
  kSharedOfBlock = 8,
  kConstantBytes = 9,
  kLanesOfWarp = 10,
  kPitch = 11,
  kRegistersOfBlock = 12,
  kClock = 13,
  kMultiprocessors = 16,
  kMemoryClock = 36,
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

int attribute(int number);
bool is_known_attribute(int number);

}  // namespace vgpu

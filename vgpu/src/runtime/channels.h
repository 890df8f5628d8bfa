// cudaChannelFormatDesc: the bits of each channel, and what they are.
#pragma once
#include "driver/arrays.h"
#include "registration.h"

namespace vgpu {

struct Channels { int bits[4], kind; };
enum ChannelKind : int { kSignedChannels, kUnsignedChannels, kRealChannels };

// kInvalidChannels: no format has such ones.
constexpr int kInvalidChannels = 20;
int format_of(const Channels& of, Format& format, unsigned& channels);
Channels channels_of(Format format, unsigned channels);

}  // namespace vgpu

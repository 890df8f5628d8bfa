// cudaChannelFormatDesc: the bits of each channel, and their kind.
#pragma once
#include "driver/arrays.h"
#include "registration.h"

namespace vgpu {

struct Channels { int bits[4], kind; };
enum ChannelKind : int { kSignedChannels, kUnsignedChannels, kRealChannels };

// cudaErrorInvalidChannelDescriptor: no format has these channels.
constexpr int kInvalidChannels = 20;
// Converts to the driver's format (CUarray_format) and number of channels; returns an error code.
int format_of(const Channels& channel_format, Format& format, unsigned& channels);
Channels channels_of(Format format, unsigned channels);

}  // namespace vgpu

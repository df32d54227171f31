// The memories of a device that is watched, read for each snapshot.
#ifndef HANGSCOPE_SNAPSHOT_DEVICE_CAPTURE_H
#define HANGSCOPE_SNAPSHOT_DEVICE_CAPTURE_H

#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "device/live_device.h"
#include "model/manifest.h"

namespace hangscope {

// Names and bytes of the files of a snapshot: the image and the catalog of each memory that can be
// read, the catalogs of what its cores run, and the device's file (device/device_file.h), which
// names all of them, and says of each other memory why it is not there. Says the same in
// `manifest`. Memories are read one after the other.
std::vector<std::pair<std::string, std::string>> CaptureDevice(FileSystem& files,
                                                               LiveDevice& device,
                                                               DeviceManifest* manifest);
// The memories in a snapshot. Fails where their file names anything that is not in the folder: a
// snapshot may be somebody else's, and a device's file can name commands.
Result<DeviceSpec> ReadCapturedDevice(FileSystem& files, const std::string& folder);
bool HasDevice(FileSystem& files, const std::string& folder);
// Whether a snapshot of a device has a file of this name.
bool IsPartOfDevice(const std::string& name);

}  // namespace hangscope

#endif

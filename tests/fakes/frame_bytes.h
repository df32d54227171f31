// Mixes the traces of several ids into the frames of a CoreSight formatter, as hangscope's
// hwtrace/coresight_frames.h draws them.
#ifndef HANGSCOPE_TESTS_FAKES_FRAME_BYTES_H
#define HANGSCOPE_TESTS_FAKES_FRAME_BYTES_H

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

namespace hangscope {

// What Linux's drivers write over the oldest frame of a sink that was overwritten.
inline const std::string kFrameBarrier = [] {
  std::string bytes;
  for (int i = 0; i < 4; ++i) bytes += "\xff\xff\xff\x7f";
  return bytes;
}();

class FrameBytes {
 public:
  FrameBytes& Put(uint8_t id, std::string_view trace) {
    for (const char byte : trace) waiting_.push_back({id, byte});
    // The last byte may have to know what comes behind it.
    while (waiting_.size() > 16) Fill();
    return *this;
  }
  // Whole frames: what does not fill the last is padding. Forgets them.
  std::string Take() {
    while (!waiting_.empty() || !frame_.empty()) {
      while (waiting_.size() < 2) waiting_.push_back({0, '\0'});
      Fill();
      while (!waiting_.empty() && waiting_.back().id == 0) waiting_.pop_back();
      if (waiting_.empty() && frame_.empty()) break;
    }
    id_ = 0xff;  // a formatter that was stopped says it again
    std::string frames;
    frames.swap(frames_);
    return frames;
  }
  // Of whole ones, so far.
  size_t size() const { return frames_.size(); }

 private:
  struct Byte {
    uint8_t id;
    char value;
  };

  // Two bytes of the frame, the last of an even number, and the one before `extra`.
  void Fill() {
    const Byte first = waiting_[0], second = waiting_[1];
    const size_t place = frame_.size() / 2;
    if (frame_.size() == 14) {
      if (first.id == id_) {
        Data(first.value, place);
        waiting_.pop_front();
      } else {
        frame_.push_back(static_cast<char>((id_ = first.id) << 1 | 1));
      }
      frame_.push_back(extra_);
      extra_ = 0;
      frames_ += frame_;
      frame_.clear();
      return;
    }
    if (first.id != id_) {
      frame_.push_back(static_cast<char>(first.id << 1 | 1));
      frame_.push_back(first.value);
      id_ = first.id;
      waiting_.pop_front();
    } else if (second.id != id_) {
      frame_.push_back(static_cast<char>(second.id << 1 | 1));
      frame_.push_back(first.value);
      extra_ = static_cast<char>(extra_ | 1 << place);
      id_ = second.id;
      waiting_.pop_front();
    } else {
      Data(first.value, place);
      frame_.push_back(second.value);
      waiting_.pop_front();
      waiting_.pop_front();
    }
  }
  void Data(char value, size_t place) {
    frame_.push_back(static_cast<char>(value & 0xfe));
    extra_ = static_cast<char>(extra_ | (value & 1) << place);
  }

  uint8_t id_ = 0xff;
  char extra_ = 0;
  std::string frame_;
  std::string frames_;
  std::deque<Byte> waiting_;
};

}  // namespace hangscope

#endif

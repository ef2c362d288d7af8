"""Names of video files; nothing is imported here, so that commands start at once."""

#: Suffixes of videos that OpenCV can read on most systems.
VIDEO_SUFFIXES = frozenset({".mp4", ".mov", ".m4v", ".webm", ".avi", ".mkv"})

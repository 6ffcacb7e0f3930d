from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcpy

from cygnet._core._segmenter cimport cyg_text


# A text on its way through the steps: in the memory of the caller, or in one of two buffers.
cdef struct Stretch:
    const uint8_t *bytes
    size_t size
    # Its first character stands for the first one of the whole text, and so may the second do.
    bint begins
    bint doubled


cdef enum:
    LEFT_TO_STAGES = 1


cdef class Step:
    cdef Step next
    cdef int apply(self, Stretch *stretch, cyg_text *out) noexcept nogil
    cdef int run(self, Stretch *stretch, cyg_text *out, cyg_text *spare) noexcept nogil


cdef Stretch stretch_of(const uint8_t *text, size_t size) noexcept nogil
cdef int with_slack(Stretch *stretch, cyg_text *text, cyg_text *spare, size_t slack) noexcept nogil


cdef inline void take(Stretch *stretch, const cyg_text *out) noexcept nogil:
    """The stretch is now what was written."""
    stretch.bytes = out.bytes
    stretch.size = out.size


cdef inline void note_front(Stretch *stretch) noexcept nogil:
    """For a step that may make several characters of one, but of none in ASCII that stands before another such."""
    if stretch.bytes[0] >= 128 or (stretch.size > 1 and stretch.bytes[1] >= 128):
        stretch.doubled = True


cdef inline uint64_t eight_bytes(const uint8_t *at) noexcept nogil:
    cdef uint64_t value
    memcpy(&value, at, sizeof(value))
    return value


cdef inline size_t ascii_end(const uint8_t *text, size_t at, size_t size) noexcept nogil:
    """Where the run of ASCII from `at` on ends."""
    while size - at >= 8 and not eight_bytes(text + at) & 0x8080808080808080ULL:
        at += 8
    while at < size and text[at] < 128:
        at += 1
    return at

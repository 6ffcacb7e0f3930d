"""Normalizers of tokenizer.json in compiled form: a chain of steps, each of which rewrites a whole text; and those that cut, prepend and replace.

A step that changes nothing leaves the text where it is. What a step cannot do goes stage by stage, in Python. Steps know no ranges; all that decides about ids is
whether the first character still stands for the first one of the text.
"""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memchr, memcmp

from cygnet._core._segmenter cimport cyg_text, cyg_text_put, cyg_text_slack
from cygnet._core._unicode cimport cyg_is_space

cdef extern from "utf8.h" nogil:
    size_t cyg_utf8_read(const uint8_t *at, uint32_t *code)
    size_t cyg_utf8_length(uint8_t first)

cdef enum:
    SPACE = 32


cdef class Step:
    """Base of the steps; a subclass overrides apply(). A step belongs to one chain."""

    cdef int apply(self, Stretch *stretch, cyg_text *out) noexcept nogil:
        """Rewrites a stretch that is not empty: leaves it, moves its ends, or writes to `out` and takes that.

        0 for success, LEFT_TO_STAGES, or -1 out of memory.
        """
        return 0

    cdef int run(self, Stretch *stretch, cyg_text *out, cyg_text *spare) noexcept nogil:
        """apply() of this step and of those that follow; the stretch must not lie in `out`."""
        cdef int failed = 0
        if stretch.size:
            out.size = 0
            failed = self.apply(stretch, out)
        if failed or self.next is None:
            return failed
        if lies_in(stretch, out):
            return self.next.run(stretch, spare, out)
        return self.next.run(stretch, out, spare)


cdef Stretch stretch_of(const uint8_t *text, size_t size) noexcept nogil:
    """A text as a chain takes it."""
    cdef Stretch stretch
    stretch.bytes, stretch.size, stretch.begins, stretch.doubled = text, size, True, False
    return stretch


def chained(list steps):
    """The first of the steps, each of which leads to the next; None for no steps."""
    cdef Step step, following = None
    for step in reversed(steps):
        step.next = following
        following = step
    return following


cdef inline bint lies_in(const Stretch *stretch, const cyg_text *text) noexcept nogil:
    return text.bytes != NULL and text.bytes <= stretch.bytes and stretch.bytes < text.bytes + text.room


cdef int with_slack(Stretch *stretch, cyg_text *text, cyg_text *spare, size_t slack) noexcept nogil:
    """Makes sure that so many bytes can be read behind a stretch: from outside the two buffers it is copied. 0, or -1 out of memory."""
    cdef cyg_text *home = text if lies_in(stretch, text) else spare
    cdef size_t at = 0
    if lies_in(stretch, home):
        at = stretch.bytes - home.bytes
    else:
        home = text
        home.size = 0
        if cyg_text_put(home, stretch.bytes, stretch.size, 0, 0):
            return -1
    if cyg_text_slack(home, slack):
        return -1
    stretch.bytes = home.bytes + at
    return 0


cdef class StripStep(Step):
    """White space taken off the ends."""

    cdef bint left, right

    def __init__(self, bint left, bint right):
        self.left, self.right = left, right

    cdef int apply(self, Stretch *stretch, cyg_text *out) noexcept nogil:
        cdef size_t at, step
        cdef uint32_t code = 0
        while self.left and stretch.size:
            step = cyg_utf8_read(stretch.bytes, &code)
            if not cyg_is_space(code):
                break
            stretch.bytes += step
            stretch.size -= step
            stretch.begins = False
        while self.right and stretch.size:
            at = stretch.size - 1
            while (stretch.bytes[at] & 0xC0) == 0x80:
                at -= 1
            cyg_utf8_read(stretch.bytes + at, &code)
            if not cyg_is_space(code):
                break
            stretch.size = at
        return 0


cdef class PrependStep(Step):
    """A string put before the text."""

    cdef bytes owned
    cdef const uint8_t *prefix
    cdef size_t prefix_size

    def __init__(self, str prefix):
        self.owned = prefix.encode()
        self.prefix, self.prefix_size = <const uint8_t *> <const char *> self.owned, len(self.owned)

    cdef int apply(self, Stretch *stretch, cyg_text *out) noexcept nogil:
        if cyg_text_put(out, self.prefix, self.prefix_size, 0, 0) or cyg_text_put(out, stretch.bytes, stretch.size, 0, 0):
            return -1
        stretch.doubled = True
        take(stretch, out)
        return 0


cdef class ReplaceStep(Step):
    """Base of what puts a string in the place of every match; a subclass overrides find()."""

    cdef bytes owned_content
    cdef const uint8_t *content
    cdef size_t content_size

    def __init__(self, str content):
        self.owned_content = content.encode()
        self.content, self.content_size = <const uint8_t *> <const char *> self.owned_content, len(self.owned_content)

    cdef size_t find(self, const uint8_t *text, size_t at, size_t size, size_t *end) noexcept nogil:
        """Where the first match from `at` on begins, and ends; size for none."""
        return size

    cdef int apply(self, Stretch *stretch, cyg_text *out) noexcept nogil:
        cdef size_t size = stretch.size, done = 0, end = 0, at = self.find(stretch.bytes, 0, size, &end)
        if at == size:
            return 0
        # The content stands for the last character of the match.
        if at == 0 and (self.content_size == 0 or end > cyg_utf8_length(stretch.bytes[0])):
            stretch.begins = False
        if at == 0 and self.content_size and self.content_size > cyg_utf8_length(self.content[0]):
            stretch.doubled = True
        while at < size:
            if cyg_text_put(out, stretch.bytes + done, at - done, 0, 0) or cyg_text_put(out, self.content, self.content_size, 0, 0):
                return -1
            done = end
            at = self.find(stretch.bytes, done, size, &end)
        if cyg_text_put(out, stretch.bytes + done, size - done, 0, 0):
            return -1
        take(stretch, out)
        return 0


cdef class ReplaceLiteral(ReplaceStep):
    """A string, which is not empty, replaced by another."""

    cdef bytes owned_pattern
    cdef const uint8_t *pattern
    cdef size_t length

    def __init__(self, str pattern, str content):
        ReplaceStep.__init__(self, content)
        self.owned_pattern = pattern.encode()
        self.pattern, self.length = <const uint8_t *> <const char *> self.owned_pattern, len(self.owned_pattern)

    cdef size_t find(self, const uint8_t *text, size_t at, size_t size, size_t *end) noexcept nogil:
        cdef const uint8_t *found
        while at + self.length <= size:
            found = <const uint8_t *> memchr(text + at, self.pattern[0], size - self.length - at + 1)
            if found == NULL:
                break
            at = found - text
            if memcmp(found, self.pattern, self.length) == 0:
                end[0] = at + self.length
                return at
            at += 1
        return size


cdef class ReplaceSpaces(ReplaceStep):
    """Every run of at least so many spaces replaced by a string."""

    cdef size_t least

    def __init__(self, size_t least, str content):
        ReplaceStep.__init__(self, content)
        self.least = least

    cdef size_t find(self, const uint8_t *text, size_t at, size_t size, size_t *end) noexcept nogil:
        cdef size_t stop
        while at < size:
            at = one_space(text, at, size) if self.least == 1 else two_spaces(text, at, size)
            stop = at
            while stop < size and text[stop] == SPACE:
                stop += 1
            if stop - at >= self.least:
                end[0] = stop
                return at
            at = stop
        return size


cdef inline size_t one_space(const uint8_t *text, size_t at, size_t size) noexcept nogil:
    cdef const uint8_t *found = <const uint8_t *> memchr(text + at, SPACE, size - at)
    return size if found == NULL else found - text


cdef inline size_t two_spaces(const uint8_t *text, size_t at, size_t size) noexcept nogil:
    """Where the next two spaces begin; size for none."""
    cdef uint64_t both
    while size - at > 8:
        # A byte is 0 where it and the one behind it are spaces.
        both = (eight_bytes(text + at) ^ 0x2020202020202020ULL) | (eight_bytes(text + at + 1) ^ 0x2020202020202020ULL)
        if (both - 0x0101010101010101ULL) & ~both & 0x8080808080808080ULL:
            break
        at += 8
    while at + 1 < size and not (text[at] == SPACE and text[at + 1] == SPACE):
        at += 1
    return size if at + 1 >= size else at


cdef class ReplaceWhiteSpace(ReplaceStep):
    """Every run of at least so many characters of white space replaced by a string."""

    cdef size_t least

    def __init__(self, size_t least, str content):
        ReplaceStep.__init__(self, content)
        self.least = least

    cdef size_t find(self, const uint8_t *text, size_t at, size_t size, size_t *end) noexcept nogil:
        cdef size_t begin = at, step, count = 0
        cdef uint32_t code = 0
        while at < size:
            step = cyg_utf8_read(text + at, &code)
            if cyg_is_space(code):
                begin = begin if count else at
                count += 1
            elif count >= self.least:
                break
            else:
                count = 0
            at += step
        end[0] = at
        return begin if count >= self.least else size

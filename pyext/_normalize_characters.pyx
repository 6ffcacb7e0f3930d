"""Steps of a normalizer that look at each character alone: lower case, marks dropped, the clean-up of SentencePiece's nmt rules."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t
from libc.string cimport memcpy, memset

from cygnet._core._normalize cimport Step, Stretch, ascii_end, note_front, take
from cygnet._core._segmenter cimport cyg_text, cyg_text_slack
from cygnet._core._unicode cimport cyg_is_mark_9, cyg_lower

cdef extern from "utf8.h" nogil:
    size_t cyg_utf8_read(const uint8_t *at, uint32_t *code)
    size_t cyg_utf8_write(uint8_t *at, uint32_t code)

cdef enum:
    # In the place of a character: nothing.
    NOTHING = 0xFFFFFFFF

cdef enum:
    REMOVED = 1
    SPACED = 2


cdef class CharacterStep(Step):
    """Base of the steps by character; a subclass overrides become().

    Attributes
    ----------
    ascii_stays : bool
        Nothing of ASCII changes.
    ascii_becomes : uint8_t[128]
        What ASCII becomes where it changes; 255 for nothing.
    """

    cdef bint ascii_stays, ascii_drops
    cdef uint8_t[128] ascii_becomes

    def __init__(self):
        cdef uint32_t c, new
        self.ascii_stays, self.ascii_drops = True, False
        for c in range(128):
            new = self.become(c)
            self.ascii_stays = self.ascii_stays and new == c
            self.ascii_drops = self.ascii_drops or new == NOTHING
            self.ascii_becomes[c] = 255 if new == NOTHING else <uint8_t> new

    cdef uint32_t become(self, uint32_t code) noexcept nogil:
        """What a character becomes, or NOTHING; one of ASCII stays in ASCII."""
        return code

    cdef size_t write(self, uint8_t *place, uint32_t code) noexcept nogil:
        """Writes what a character becomes, in at most 4 bytes or twice as many as it had; returns their number."""
        cdef uint32_t new = self.become(code)
        return 0 if new == NOTHING else cyg_utf8_write(place, new)

    cdef int apply(self, Stretch *stretch, cyg_text *out) noexcept nogil:
        cdef const uint8_t *text = stretch.bytes
        cdef uint8_t *place
        cdef size_t at = 0, end, size = stretch.size, length
        cdef uint32_t code = 0
        if self.ascii_stays and ascii_end(text, 0, size) == size:
            return 0
        if cyg_text_slack(out, 2 * size + 8):
            return -1
        note_front(stretch)
        place = out.bytes
        while at < size:
            if text[at] < 128:
                end = ascii_end(text, at, size)
                place += self.write_ascii(place, text + at, end - at)
                at = end
            else:
                end = at + cyg_utf8_read(text + at, &code)
                length = self.write(place, code)
                if at == 0 and length == 0:
                    stretch.begins = False
                place += length
                at = end
        if text[0] < 128 and self.ascii_becomes[text[0]] == 255:
            stretch.begins = False
        out.size = place - out.bytes
        take(stretch, out)
        return 0

    cdef size_t write_ascii(self, uint8_t *place, const uint8_t *text, size_t size) noexcept nogil:
        """Writes what ASCII becomes; returns the number of bytes."""
        cdef size_t i, count = 0
        if self.ascii_stays:
            memcpy(place, text, size)
            return size
        if not self.ascii_drops:
            for i in range(size):
                place[i] = self.ascii_becomes[text[i]]
            return size
        for i in range(size):
            place[count] = self.ascii_becomes[text[i]]
            count += place[count] != 255
        return count


cdef class LowercaseStep(CharacterStep):
    """Each character in its full lower-case form."""

    cdef uint32_t become(self, uint32_t code) noexcept nogil:
        return cyg_lower(code)

    cdef size_t write(self, uint8_t *place, uint32_t code) noexcept nogil:
        if code != 0x130:
            return cyg_utf8_write(place, cyg_lower(code))
        place[0] = 0x69
        return 1 + cyg_utf8_write(place + 1, 0x307)


cdef class StripAccentsStep(CharacterStep):
    """Combining marks dropped."""

    cdef uint32_t become(self, uint32_t code) noexcept nogil:
        return NOTHING if cyg_is_mark_9(code) else code


cdef class NmtStep(CharacterStep):
    """Some control characters dropped, and odd spaces made plain.

    Parameters
    ----------
    removed, spaces : sets of str
        Characters of the first plane.
    """

    cdef uint8_t[0x10000] change

    def __init__(self, removed, spaces):
        memset(self.change, 0, sizeof(self.change))
        for character in spaces:
            self.change[ord(character)] = SPACED
        for character in removed:
            self.change[ord(character)] = REMOVED
        CharacterStep.__init__(self)

    cdef uint32_t become(self, uint32_t code) noexcept nogil:
        cdef uint8_t change = self.change[code] if code < 0x10000 else 0
        return NOTHING if change == REMOVED else 32 if change == SPACED else code

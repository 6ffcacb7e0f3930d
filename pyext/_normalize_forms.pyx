"""Unicode normalisation forms (UAX #15) as a step of a normalizer.

Most characters are the same in every form whatever stands around them; these are copied in runs. Only from the last such one before a character of another
kind up to the next such one is text taken apart, put in order and, for NFC and NFKC, together again.
"""

cimport cython
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t
from libc.string cimport memset

from cygnet._core._normalize cimport LEFT_TO_STAGES, Step, Stretch, ascii_end, note_front, take
from cygnet._core._segmenter cimport cyg_text, cyg_text_put
from cygnet._core._unicode cimport cyg_combining_class, cyg_compose, cyg_decompose

cdef extern from "utf8.h" nogil:
    size_t cyg_utf8_read(const uint8_t *at, uint32_t *code)
    size_t cyg_utf8_write(uint8_t *at, uint32_t code)

cdef extern from "unicode.h" nogil:
    const uint32_t cyg_composition_count
    const uint32_t *cyg_compositions

cdef enum:
    # Marks on one character: more are left to the stages.
    MOST_MARKS = 64
    PLANE = 0x10000
    PLANE_BYTES = 0x2000
    NO_BASE = 0xFFFFFFFF


# What is not yet written of a text that is taken apart.
cdef struct Pending:
    uint32_t base
    # Marks that follow the base and were not joined with it, and those that are not yet in order.
    uint32_t[MOST_MARKS] blocked
    uint32_t[MOST_MARKS] marks
    int blocked_count
    int mark_count


@cython.final
cdef class FormStep(Step):
    """NFC, NFD, NFKC or NFKD.

    Parameters
    ----------
    compatibility : bool
        Decompose as the forms with a K do.
    composed : bool
        Compose as the forms with a C do.
    """

    cdef bint compatibility, composed
    # One bit for each character of the first plane: it stays as it is and joins with none before it.
    cdef uint8_t[PLANE_BYTES] stable
    # Of the other planes, where characters lie that join with one before them.
    cdef uint32_t first_joining, last_joining

    def __init__(self, bint compatibility, bint composed):
        cdef uint32_t code, i
        cdef uint32_t plane = PLANE
        self.compatibility, self.composed = compatibility, composed
        self.first_joining, self.last_joining = NO_BASE, 0
        memset(self.stable, 0, sizeof(self.stable))
        for code in range(plane):
            if self.stays(code):
                self.stable[code >> 3] |= 1 << (code & 7)
        if not composed:
            return
        for i in range(cyg_composition_count):
            code = cyg_compositions[3 * i + 1]
            if code < PLANE:
                self.stable[code >> 3] &= ~(1 << (code & 7))
            else:
                self.first_joining, self.last_joining = min(self.first_joining, code), max(self.last_joining, code)
        # Vowels and final consonants of Hangul.
        for code in [*range(0x1161, 0x1176), *range(0x11A8, 0x11C3)]:
            self.stable[code >> 3] &= ~(1 << (code & 7))

    cdef bint stays(self, uint32_t code) noexcept nogil:
        """Whether a character alone is its own form and orders with none before it."""
        cdef uint32_t[18] parts
        cdef int i, count = cyg_decompose(code, self.compatibility, parts)
        cdef uint32_t whole = parts[0]
        if cyg_combining_class(code) or cyg_combining_class(whole):
            return False
        for i in range(1, count):
            if not self.composed:
                return False
            whole = cyg_compose(whole, parts[i])
        return whole == code

    cdef bint is_stable(self, uint32_t code) noexcept nogil:
        if code < PLANE:
            return self.stable[code >> 3] >> (code & 7) & 1
        return not (self.first_joining <= code <= self.last_joining) and self.stays(code)

    cdef int apply(self, Stretch *stretch, cyg_text *out) noexcept nogil:
        cdef const uint8_t *text = stretch.bytes
        # done: written up to here; last: the stable character before `at`.
        cdef size_t size = stretch.size, at = 0, done = 0, last = 0, end, step
        cdef uint32_t code = 0
        cdef int failed
        note_front(stretch)
        while at < size:
            end = ascii_end(text, at, size)
            if end > at:
                last = end - 1
                at = end
                continue
            step = cyg_utf8_read(text + at, &code)
            if self.is_stable(code):
                last = at
                at += step
                continue
            if cyg_text_put(out, text + done, last - done, 0, 0):
                return -1
            failed = self.rewrite(out, text, last, at + step, size, &done)
            if failed:
                return failed
            at = last = done
        if done == 0:
            return 0
        if cyg_text_put(out, text + done, size - done, 0, 0):
            return -1
        take(stretch, out)
        return 0

    cdef int rewrite(self, cyg_text *out, const uint8_t *text, size_t at, size_t least, size_t size, size_t *done) noexcept nogil:
        """Appends the form of the text from `at` up to the first stable character at or behind `least`; *done becomes its place."""
        cdef Pending pending
        cdef uint32_t[18] parts
        cdef uint32_t code = 0
        cdef size_t step
        cdef int i, count, failed
        pending.base = NO_BASE
        pending.blocked_count = pending.mark_count = 0
        while at < size:
            step = cyg_utf8_read(text + at, &code)
            if at >= least and self.is_stable(code):
                break
            count = cyg_decompose(code, self.compatibility, parts)
            for i in range(count):
                failed = self.add(out, &pending, parts[i])
                if failed:
                    return failed
            at += step
        done[0] = at
        failed = self.order(out, &pending)
        return failed if failed else self.flush(out, &pending)

    cdef int add(self, cyg_text *out, Pending *pending, uint32_t code) noexcept nogil:
        """Takes the next character of a decomposition."""
        cdef int failed
        if cyg_combining_class(code):
            if pending.mark_count == MOST_MARKS:
                return LEFT_TO_STAGES
            pending.marks[pending.mark_count] = code
            pending.mark_count += 1
            return 0
        failed = self.order(out, pending)
        return failed if failed else self.join(out, pending, code, 0)

    cdef int order(self, cyg_text *out, Pending *pending) noexcept nogil:
        """Hands the marks on in canonical order."""
        cdef int i, k, failed = 0
        cdef uint32_t code
        for i in range(1, pending.mark_count):
            code = pending.marks[i]
            k = i
            while k > 0 and cyg_combining_class(pending.marks[k - 1]) > cyg_combining_class(code):
                pending.marks[k] = pending.marks[k - 1]
                k -= 1
            pending.marks[k] = code
        for i in range(pending.mark_count):
            if not failed:
                failed = self.join(out, pending, pending.marks[i], cyg_combining_class(pending.marks[i]))
        pending.mark_count = 0
        return failed

    cdef int join(self, cyg_text *out, Pending *pending, uint32_t code, unsigned combining) noexcept nogil:
        """Takes the next character of an ordered decomposition: joined with the base, kept behind it, or the new base."""
        cdef uint32_t composite = 0
        cdef int count = pending.blocked_count
        if not self.composed or (pending.base == NO_BASE and combining):
            return put_code(out, code)
        if pending.base != NO_BASE and (count == 0 or cyg_combining_class(pending.blocked[count - 1]) < combining):
            composite = cyg_compose(pending.base, code)
        if composite:
            pending.base = composite
            return 0
        if combining:
            if count == MOST_MARKS:
                return LEFT_TO_STAGES
            pending.blocked[count] = code
            pending.blocked_count += 1
            return 0
        if self.flush(out, pending):
            return -1
        pending.base = code
        return 0

    cdef int flush(self, cyg_text *out, Pending *pending) noexcept nogil:
        """Writes the base and what is kept behind it."""
        cdef int i
        if pending.base != NO_BASE and put_code(out, pending.base):
            return -1
        for i in range(pending.blocked_count):
            if put_code(out, pending.blocked[i]):
                return -1
        pending.base = NO_BASE
        pending.blocked_count = 0
        return 0


cdef inline int put_code(cyg_text *out, uint32_t code) noexcept nogil:
    cdef uint8_t[4] letter
    return cyg_text_put(out, letter, cyg_utf8_write(letter, code), 0, 0)

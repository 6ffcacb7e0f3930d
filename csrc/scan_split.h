/* Hand-written split rules: where the pre-tokenizers of GPT-2 and its successors cut a text. */
#ifndef CYG_SCAN_SPLIT_H
#define CYG_SCAN_SPLIT_H

#include "scan_classes.h"

/* How words are formed (the regular expressions are in python/cygnet/tokenizers/split_rules.py). */
typedef enum {
    CYG_RULE_NONE,   /* one piece */
    CYG_RULE_GPT2,   /* words, numbers and signs, each with one space before it */
    CYG_RULE_CL100K, /* words with any one sign before them, numbers in groups, signs with the line ends after them */
    CYG_RULE_O200K,  /* as CL100K, and words cut where small letters turn to capitals */
    CYG_RULE_DEEPSEEK /* as CL100K without contractions; words take marks, one ASCII sign goes with ASCII letters after it */
} cyg_word_rule;

/* What is cut out before the words are formed; each stretch between is then a text of its own. */
enum { CYG_CUT_EACH_NUMBER = 1, CYG_CUT_THREE_NUMBERS = 2, CYG_CUT_NUMBER_RUN = 4, CYG_CUT_CJK = 8 };

typedef struct {
    cyg_word_rule words;
    unsigned cuts;
    unsigned digits; /* CL100K, O200K: numbers in a group (0: no limit) */
} cyg_split_rule;

typedef struct {
    const uint8_t *text;
    size_t length;
    const cyg_classes *classes;
    cyg_split_rule rule;
    size_t at;        /* where the next piece begins */
    /* Rules with cuts go stretch by stretch ... */
    size_t limit;     /* end of the stretch at hand */
    int whole;        /* the stretch at hand is one piece */
    /* ... the others by where pieces or runs begin in 64 bytes of text: `starts` of word `word`, those before taken. */
    size_t word;
    uint64_t starts;
    /* GPT2 and CL100K piece by piece (scan_starts.h). */
    size_t start_at;  /* a start in a later word */
    int first_joins;  /* the next word's first byte begins no piece */
    unsigned numbers; /* of the group of numbers that the last word ended in */
    /* O200K run by run, a run being neighbouring characters of one kind (with a lone space before them). */
    size_t run, run_end;
    int blank_before; /* the word before ended in a lone space */
} cyg_splitter;

void cyg_split_begin(cyg_splitter *s, const cyg_split_rule *rule, const cyg_classes *classes, const uint8_t *text, size_t length);

/* Writes the ends of up to `capacity` further pieces and returns how many; 0 at the end of the text. */
size_t cyg_split_next(cyg_splitter *s, size_t *ends, size_t capacity);

#endif

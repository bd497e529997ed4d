/* A closed set of words: one list with rows W(constant, "word", "meaning"), from which come the
 * enum and its texts.
 *
 *     #define ENDING_KINDS(W)  W(ENDED_STATUS, "exited", "...") W(ENDED_SIGNAL, "signaled", "...")
 *     enum ending_kind { ENDING_KINDS(WORD_CONSTANT) }; */
#pragma once

#define WORD_CONSTANT(constant, word, meaning) constant,
#define WORD_TEXT(constant, word, meaning)     [constant] = (word),
#define WORD_ONE(constant, word, meaning)      +1

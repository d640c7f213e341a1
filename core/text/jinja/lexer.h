/* core/text/jinja/lexer.h - template source to tokens. [one thread] */
#ifndef KOPI_CORE_TEXT_JINJA_LEXER_H
#define KOPI_CORE_TEXT_JINJA_LEXER_H

#include "text/jinja/ast.h"

enum kopi_jtoken_type {
    KOPI_T_TEXT,      /* s, n: output as it is, white space already trimmed */
    KOPI_T_VAR_BEGIN, /* {{ */
    KOPI_T_VAR_END,
    KOPI_T_BLOCK_BEGIN, /* {% */
    KOPI_T_BLOCK_END,
    KOPI_T_NAME,   /* s, n */
    KOPI_T_STRING, /* s, n: unescaped, in the arena */
    KOPI_T_INT,
    KOPI_T_FLOAT,
    KOPI_T_OP, /* op */
    KOPI_T_END
};
struct kopi_jtoken {
    uint8_t type;
    uint16_t op;
    uint32_t pos;
    union {
        struct {
            const char *s;
            uint32_t n;
        };
        int64_t i;
        double f;
    };
};

struct kopi_jlexer {
    struct kopi_jarena *arena;
    const char *src; /* line ends are \n */
    uint32_t n;
    struct kopi_jtoken *tok; /* the result, ends with KOPI_T_END */
    uint32_t n_tok;
    /* state */
    uint32_t pos, cap;
    bool line_starting; /* the last token ended with a newline, or there was none */
    char closers[64];   /* brackets still open in this tag, innermost last */
    unsigned n_closers;
    kopi_error *err;
};
/* False: *err holds the error (KOPI_E_MODEL with line and column), or the arena has stopped. */
bool kopi__jlex(struct kopi_jlexer *l);

#endif

/* core/text/jinja/ast.h - a parsed template. Immutable after parsing, so that threads can share it. [any] */
#ifndef KOPI_CORE_TEXT_JINJA_AST_H
#define KOPI_CORE_TEXT_JINJA_AST_H

#include "text/jinja/value.h"
#include <kopi/kopi.h>

/* What the fields of a node mean, per kind. A `-` field is unused. Args are nodes; the named ones are NAMED. */
enum kopi_jkind {
    /* expressions      | a           | b      | c          | list                | sym, val, op        */
    KOPI_N_CONST,    /*   -             -        -            -                     val                  */
    KOPI_N_NAME,     /*   -             -        -            -                     sym                  */
    KOPI_N_LIST,     /*   -             -        -            items                                      */
    KOPI_N_TUPLE,    /*   -             -        -            items                                      */
    KOPI_N_DICT,     /*   -             -        -            key, value, ...                            */
    KOPI_N_ATTR,     /*   object        -        -            -                     val: name            */
    KOPI_N_ITEM,     /*   object        key                                                              */
    KOPI_N_SLICE,    /*   object        start?   stop?        [0]: step?                                 */
    KOPI_N_CALL,     /*   callee        -        -            args                                       */
    KOPI_N_FILTER,   /*   input         -        -            args                  val: name, builtin   */
    KOPI_N_TEST,     /*   input         -        -            args                  val: name, builtin   */
    KOPI_N_UNARY,    /*   operand       -        -            -                     op: + -              */
    KOPI_N_BINARY,   /*   left          right    -            -                     op                   */
    KOPI_N_CONCAT,   /*   -             -        -            operands of ~                              */
    KOPI_N_COMPARE,  /*   first         -        -            COMPARE_TO ...                             */
    KOPI_N_COMPARE_TO, /* operand       -        -            -                     op                   */
    KOPI_N_AND,      /*   left          right                                                            */
    KOPI_N_OR,       /*   left          right                                                            */
    KOPI_N_NOT,      /*   operand                                                                        */
    KOPI_N_COND,     /*   condition     then     else?                                                   */
    KOPI_N_NAMED,    /*   value?        -        -            -                     sym, val: name       */
    KOPI_N_CAPTURED, /*   the text that the enclosing filter block or set block has captured             */
    /* statements */
    KOPI_N_BODY,     /*   -             -        -            statements                                 */
    KOPI_N_TEXT,     /*   -             -        -            -                     val                  */
    KOPI_N_OUTPUT,   /*   value                                                                          */
    KOPI_N_IF,       /*   -             -        else?        condition, body, ...                       */
    KOPI_N_FOR,      /*   target        items    condition?   [0]: body, [1]: else?                      */
    KOPI_N_SET,      /*   target        value                                                            */
    KOPI_N_SET_BLOCK, /*  target        filters  body                                                    */
    KOPI_N_MACRO,    /*   -             -        body         NAMED parameters      sym, val: name       */
    KOPI_N_CALL_BLOCK, /* call          -        body         NAMED parameters                           */
    KOPI_N_FILTER_BLOCK, /* -           filters  body                                                    */
    KOPI_N_SCOPE,    /*   -             -        body         SET ... (with) or none (generation)        */
    KOPI_N_BREAK,
    KOPI_N_CONTINUE,
    KOPI_N_KINDS
};

/* Operators are their characters: '+', KOPI_J_OP2('/', '/'), ... */
#define KOPI_J_OP2(x, y) ((uint16_t)((x) | (y) << 8))
enum { KOPI_J_OP_IN = KOPI_J_OP2('i', 'n'), KOPI_J_OP_NOT_IN = KOPI_J_OP2('n', 'i') };

struct kopi_jnode {
    uint8_t kind;
    uint16_t op;
    uint16_t depth; /* 1 + the deepest child: bounds the recursion of evaluation */
    uint32_t pos;   /* offset in the source */
    uint32_t sym, n;
    const struct kopi_jnode *a, *b, *c;
    const struct kopi_jnode **list; /* n nodes; elements marked ? may be NULL */
    const struct kopi_jbuiltin *builtin; /* NULL: there is none of that name, an error when it is reached */
    struct kopi_jval val;
};

struct kopi_jtemplate {
    struct kopi_jarena arena;
    const char *source; /* line ends made \n */
    uint32_t n;
    const struct kopi_jstr *symbols; /* names of variables by sym */
    uint32_t n_symbols;
    const struct kopi_jnode *root; /* BODY */
};

/* Parses UTF-8 source with the options that chat templates are written for (trim_blocks, lstrip_blocks, loop controls,
 * generation blocks). Keeps no pointer into source. Errors: KOPI_E_MODEL with line and column, KOPI_E_NOMEM. */
kopi_status kopi__jtemplate_parse(const char *source, size_t n, struct kopi_jtemplate **out, kopi_error *err);
void kopi__jtemplate_free(struct kopi_jtemplate *t);

/* 1-based; the column counts characters. */
void kopi__jposition(const char *source, uint32_t pos, unsigned *line, unsigned *column);

#endif

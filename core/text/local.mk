libcore_la_SOURCES += \
	core/text/bpe.c core/text/bpe.h core/text/detok.c core/text/merge.c core/text/merge.h core/text/pretok.c \
	core/text/pretok.h core/text/special.c core/text/special.h core/text/spm.c core/text/spm.h core/text/tokenizer.c \
	core/text/tokenizer.h core/text/vocab.c core/text/vocab.h

libcore_la_SOURCES += \
	core/text/chat.c core/text/chat.h core/text/chat_messages.c core/text/chat_messages.h \
	core/text/jinja/arena.c core/text/jinja/arena.h core/text/jinja/ast.h core/text/jinja/builtin.h core/text/jinja/call.c \
	core/text/jinja/expr.c core/text/jinja/expression.c core/text/jinja/filter_number.c core/text/jinja/filter_pick.c \
	core/text/jinja/filter_seq.c core/text/jinja/filter_text.c core/text/jinja/format.c core/text/jinja/globals.c \
	core/text/jinja/json.c core/text/jinja/json.h core/text/jinja/lexer.c core/text/jinja/lexer.h core/text/jinja/loop.c \
	core/text/jinja/method_container.c core/text/jinja/method_str.c core/text/jinja/operator.c core/text/jinja/parser.c \
	core/text/jinja/parser.h core/text/jinja/run.c core/text/jinja/run.h core/text/jinja/scope.c \
	core/text/jinja/statement.c core/text/jinja/str.c core/text/jinja/str.h core/text/jinja/strutil.c \
	core/text/jinja/tests.c core/text/jinja/text.c core/text/jinja/value.c core/text/jinja/value.h

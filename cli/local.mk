# The command is linked with the core itself: it shows what the public interface does not (files, programs, kernels).
bin_PROGRAMS += kopi
kopi_SOURCES = \
	cli/cli.h cli/cmd_backends.c cli/cmd_bench.c cli/cmd_config.c cli/cmd_inspect.c cli/cmd_logits.c cli/cmd_perplexity.c \
	cli/cmd_run.c cli/cmd_tokenize.c cli/commands.c cli/commands.h cli/common.c cli/main.c cli/npy.c cli/npy.h \
	cli/options.c cli/repl.c cli/repl.h
kopi_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/cli
kopi_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS) -pthread
kopi_LDADD = libcore.la $(JANSSON_LIBS) $(LIBM)

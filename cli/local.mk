# The command is linked with the core itself: it shows what the public interface does not (files, programs, kernels).
bin_PROGRAMS += kopi
kopi_SOURCES = \
	cli/bench_report.c cli/bench_report.h cli/check.h cli/check_file.c cli/check_file.h cli/check_model.c \
	cli/check_report.c cli/check_report.h cli/cli.h cli/cmd_backends.c cli/cmd_backends_new.c \
	cli/cmd_check.c cli/cmd_bench.c cli/cmd_config.c cli/cmd_inspect.c cli/cmd_logits.c cli/cmd_perplexity.c \
	cli/cmd_profile.c cli/cmd_run.c cli/cmd_tokenize.c cli/commands.c cli/commands.h cli/common.c cli/inputs.c cli/inputs.h cli/lines.c cli/lines.h cli/log.c cli/main.c cli/npy.c cli/npy.h \
	cli/options.c cli/outfile.c cli/outfile.h \
	cli/profile_report.c cli/profile_report.h cli/profile_trace.c cli/profile_trace.h cli/repl.c cli/repl.h cli/repl_commands.c cli/talk.c cli/talk.h cli/template.h
kopi_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/cli -I$(top_srcdir)
kopi_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS) $(EDIT_CFLAGS) -pthread
kopi_LDADD = libconformance.la libcore.la $(JANSSON_LIBS) $(EDIT_LIBS) $(LIBM)

# The template of `kopi backends new` is the example itself.
template = examples/backend-demo/configure.ac examples/backend-demo/Makefile.am examples/backend-demo/kopi-demo.c \
	examples/backend-demo/README.md
nodist_kopi_SOURCES = cli/template.c
cli/template.c: $(template) scripts/embed
	$(AM_V_GEN)$(MKDIR_P) cli && (cd $(srcdir) && $(SHELL) scripts/embed $(template)) > $@-t && mv $@-t $@
CLEANFILES += cli/template.c
EXTRA_DIST += $(template) scripts/embed

# plugins/cpu-threaded

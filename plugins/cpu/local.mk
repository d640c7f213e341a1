# plugins/cpu

# What the processor's time stamp counter shows is asked of the runtime: time is virtual in serial executions, and so is its count.
# GNU as reads this before what it assembles. A macro has precedence over the instruction of its name, in compiled code and in
# assembly written by hand.
#
# As the instruction, the call changes rax and rdx (and rcx) alone. It keeps away from the red zone, 128 bytes below the stack
# pointer. Bytes stand for what the two syntaxes of assembly write differently: lea -128(%rsp), %rsp; lea 128(%rsp), %rsp;
# mov $0, %ecx.
#
# An object that is linked without the runtime has the instruction itself, by a definition of its own that gives way to others.
#
# Where gcc optimises at the link, it names this file twice.

.ifndef .Lrashomon_counter_is_read
.set    .Lrashomon_counter_is_read, 1

.macro rdtsc
        .byte   0x48, 0x8d, 0x64, 0x24, 0x80
        call    __rashomon_counter@PLT
        .byte   0x48, 0x8d, 0xa4, 0x24, 0x80, 0x00, 0x00, 0x00
        .ifndef .Lrashomon_counter_is_defined
        .set    .Lrashomon_counter_is_defined, 1
        .pushsection .text.__rashomon_counter, "axG", @progbits, __rashomon_counter, comdat
        .weak   __rashomon_counter
        .type   __rashomon_counter, @function
__rashomon_counter:
        .byte   0x0f, 0x31
        ret
        .size   __rashomon_counter, . - __rashomon_counter
        .popsection
        .endif
.endm

.macro rdtscp
        rdtsc
        .byte   0xb9, 0x00, 0x00, 0x00, 0x00
.endm

.endif

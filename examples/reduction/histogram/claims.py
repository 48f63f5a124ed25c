# ---
# jupyter:
#   cudatut:
#     title: {en: "The histogram: claims", zh: "直方图：有关说法"}
#     requires: sm_75
#     timeout_s: 60
#     alone: false
# ---

# %% [markdown]
# What another source says of atomics, tried.

# %% exist-claim
import cudatut as ct

OPERATIONS = ("Add", "Sub", "Exch", "Min", "Max", "Inc", "Dec")
OPERATIONS += ("And", "Or", "Xor")
table = ct.empty((4, len(OPERATIONS)), "int32")
exist = ct.Kernel("reduction/histogram/histogram_atomics.cu", "atomics_exist")
exist(table, grid=1, block=1)
_, of_unsigned, of_float, _ = table.get().astype(bool)
ct.claim(
    id="histogram-float-atomics",
    source="CS179 notes",
    place={
        "en": "the section on synchronization (同步与并行), the list of atomics",
        "zh": "“同步与并行”一节，原子操作的列表",
    },
    form="said",
    statement={
        "en": "atomic<op>(float *address, float val) exists for these ten "
        "operations: Add, Sub, Exch, Min, Max, Inc, Dec, And, Or and Xor.",
        "zh": "atomic<op>(float *address, float val) 有这十种运算：Add、Sub、"
        "Exch、Min、Max、Inc、Dec、And、Or、Xor。",
    },
    expected=len(OPERATIONS),
    measured=int(of_float.sum()),
    unit="operations",
    rule="equal",
    found="counted",
    control=(
        {
            "en": "the same question for unsigned, where all of them exist",
            "zh": "对 unsigned 问同样的问题，那里十种都有",
        },
        int(of_unsigned.sum()),
        10,
    ),
)

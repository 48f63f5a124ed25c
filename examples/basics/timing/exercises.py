# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "A timer of your own", zh: "自己写一个计时函数"}
#         level: easy
#         minutes: 15
#         task:
#           en: >-
#             Write `times_us(launch, flush, rounds)`. It calls `launch` once
#             without timing it. Then, `rounds` times, it calls `flush` and times
#             one `launch` between two events. It returns the times in
#             microseconds. The check looks at the order of the calls, and that
#             the flush is not part of any time.
#           zh: >-
#             写 `times_us(launch, flush, rounds)`：先调用一次 `launch`，不计时；
#             然后重复 `rounds` 次：调用 `flush`，再用两个事件给一次 `launch` 计时。
#             返回以微秒为单位的各次时间。检查程序看调用的次序，以及清空缓存的时间有没有
#             算进去。
#         fails: "number of times"
#       2:
#         title: {en: "A small difference", zh: "微小的差别"}
#         level: medium
#         minutes: 20
#         given: ["one percent", "百分之一"]
#         task:
#           en: >-
#             `chain` makes a given number of steps that wait for each other, so
#             1,010,000 steps take one percent longer than 1,000,000. Write
#             `share_slower(a, b, rounds)`: in which share of the rounds was b
#             slower than a? A tie counts as one half. Predict the share for b = a
#             and for b one percent longer. What would go wrong if a always ran
#             first?
#           zh: >-
#             `chain` 做指定的步数，每一步都要等前一步，所以 1,010,000 步比 1,000,000
#             步多用百分之一的时间。写 `share_slower(a, b, rounds)`：b 比 a 慢的轮次占
#             多大比例？相等算半次。先预测 b 就是 a 时的比例，再预测 b 长百分之一时的
#             比例。如果每一轮都让 a 先运行，会有什么问题？
#         fails: "1 % longer"
#       3:
#         title: {en: "Find the L2 cache with a clock", zh: "只用计时找出 L2 缓存有多大"}
#         level: hard
#         minutes: 30
#         task:
#           en: >-
#             Write `hot_rate(mb)`: the rate in GB/s of a copy that reads and
#             writes `mb` megabytes in all, launched over and over. Use `copy`,
#             `busy` and events. The check calls it for an eighth of the L2 cache
#             up to five times its size, and looks up to where the copy is faster
#             than the memory. Predict whether the edge is sharp, and whether it
#             lies at the size that the driver states.
#           zh: >-
#             写 `hot_rate(mb)`：一次复制共读写 `mb` MB，一次接一次地启动，速率是多少
#             GB/s？可以用 `copy`、`busy` 和事件。检查程序从 L2 缓存的八分之一试到五倍，
#             看数据量不超过多少时，速率高于显存带宽。先预测：分界是陡的吗？是不是正好落在驱动报告
#             的大小上？
#         fails: "found / driver"
# ---


# %% stub-1
def times_us(launch, flush, rounds):
    """Microseconds of each of `rounds` launches, each after a flush."""
    return []  # yours


# %% stub-2
def share_slower(a, b, rounds):
    """In which share of the rounds was b slower than a? A tie is one half."""
    return 0.5  # yours: ct.time_once(a), ct.time_once(b) in each round


# %% stub-3
def hot_rate(mb):
    """GB/s of a copy that reads and writes `mb` MB in all, over and over."""
    return 0.0  # yours

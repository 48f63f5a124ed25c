# ---
# jupyter:
#   cudatut:
#     requires: sm_80
#     exercises:
#       1:
#         title: {en: "What is left to compute?", zh: "还要计算多少个词元？"}
#         level: easy
#         minutes: 15
#         task:
#           en: >-
#             `earlier` holds the tokens of all requests so far, every one of them computed and nothing
#             evicted. Write `left_to_compute(prompt, earlier, size)`: the number of tokens of the prompt that a
#             manager with blocks of `size` tokens still has to compute. Only whole blocks are found, and at
#             least one token is always computed. The check compares random prompts with `PrefixBlocks`.
#           zh: >-
#             `earlier` 是此前所有请求的词元，全部算过，也没有淘汰任何块。写出 `left_to_compute(prompt, earlier, size)`：块大小为
#             `size` 时，这个提示还有多少词元要算。只能找到整块，而且至少要算一个词元。检查程序随机生成提示，把结果与
#             `PrefixBlocks` 的结果比较。
#         fails: "tokens left"
#       2:
#         title: {en: "Write the allocator", zh: "写一个分配器"}
#         level: medium
#         minutes: 35
#         task:
#           en: >-
#             The allocator below does not share blocks correctly: after a fork two tables name the same blocks,
#             and the request that leaves first frees them while the other one still holds them. Add reference counts and copy-on-write. `grow` makes
#             room for tokens up to `length` - 1, of which those from the old length on will be written, and
#             returns the blocks to be copied first, as pairs (from, to); it raises `MemoryError` and changes
#             nothing if there are too few free blocks. The check runs 300 random sequences of operations, reads every token of every
#             request after each operation, and counts the free blocks at the end.
#           zh: >-
#             下面的分配器不能正确地共享块：分叉之后，两张块表里是同样的块，先结束的请求会释放这些块，而另一个请求还在用。请加上引用计数和写时复制。`grow`
#             给 `length` - 1 号及以前的词元留出位置，其中原来没有的词元随后写入；返回写入之前要先复制的块，写成一对对（从哪块，到哪块）。空闲块
#             不够时抛出 `MemoryError`，状态保持不变。检查程序运行 300 段随机操作序列，每做完一次操作就读出所有请求的所有词元，最后
#             清点空闲块。
#         fails: "sequences"
# ---
# %% stub-1
def left_to_compute(prompt, earlier, size):
    """Tokens of the prompt that have to be computed."""
    return len(prompt)  # yours: some have been computed before


# %% stub-2
class Allocator:
    """Blocks of `size` tokens for requests that can be forked."""

    def __init__(self, count, size):
        self.size = size
        self.free = list(range(count))
        self.tables, self.lengths = {}, {}

    def begin(self, name):
        self.tables[name], self.lengths[name] = [], 0

    def grow(self, name, length):
        table = self.tables[name]
        new = -(-length // self.size) - len(table)
        if new > len(self.free):
            raise MemoryError
        table += [self.free.pop() for _ in range(new)]
        self.lengths[name] = length
        return []  # yours: copies

    def fork(self, parent, child):
        self.tables[child] = list(self.tables[parent])  # yours: count
        self.lengths[child] = self.lengths[parent]

    def release(self, name):
        self.free += self.tables.pop(name)  # yours: only what nobody holds
        del self.lengths[name]

# ---
# jupyter:
#   cudatut:
#     requires: sm_80
#     exercises:
#       1:
#         title: {en: "How long until the first token?", zh: "多少步之后才有首个词元？"}
#         level: easy
#         minutes: 10
#         task:
#           en: >-
#             `decoding` requests decode all the time, and each takes one token of every step's budget. A new
#             request with `prompt` tokens joins them and gets what is left of the budget. Write
#             `steps_to_first_token(prompt, decoding, budget)`: in which step, counted from 1, is its first token
#             sampled? The check asks the scheduler.
#           zh: >-
#             一直有 `decoding` 个请求在解码，每个在每一步的预算里占一个词元。新请求的提示有 `prompt` 个词元，加入后用剩下的预算。写出
#             `steps_to_first_token(prompt, decoding, budget)`：新请求的首个词元在第几步采样（从 1 数起）？检查程序会与调度器比较。
#         fails: "step of the first token"
#       2:
#         title: {en: "Find the bug in this scheduler", zh: "找出这个调度器里的错误"}
#         level: medium
#         minutes: 30
#         task:
#           en: >-
#             This scheduler fits on a page: continuous batching, prompts in chunks, preemption of the last. With 60
#             blocks every request gets the answer that it gets alone. With few blocks some answers are
#             wrong, and nothing fails. Find the line and mend it. A hint: write down, for a request that was
#             preempted after two answered tokens, what each chunk computes.
#           zh: >-
#             这个调度器只有一页：连续批处理，提示分段计算，抢占排在最后的请求。有 60 个块时，每个请求的回答都与单独运行时相同；块少时，
#             有些回答是错的，却没有任何报错。找出出错的那一行并改正。提示：设一个请求回答了两个词元之后被抢占，写下此后的每一段都算了什么。
#         fails: "answers"
# ---
# %% stub-1
def steps_to_first_token(prompt, decoding, budget):
    """The step, from 1, in which the new request's first token is sampled."""
    return -(-prompt // budget)  # yours: the others take their part


# %% stub-2
class Little:
    """First come first served: at most `most` requests, `budget` tokens."""

    def __init__(self, count, most=3, budget=8):
        self.blocks, self.model = NaiveBlocks(count, SIZE), Pocket(count)
        self.most, self.budget = most, budget
        self.waiting, self.running = [], []

    def step(self):
        budget, work, preempted, i = self.budget, [], False, 0
        while i < len(self.running):
            request = self.running[i]
            behind = len(self.running) - i - 1  # each is left a token
            most = request.computed + budget - behind
            stop = min(len(request.tokens), most)
            if self.room(request, stop):
                budget -= stop - request.computed
                work.append((request, stop))
                i += 1
            else:
                self.preempt()
                preempted = True
        while self.waiting and budget and len(self.running) < self.most:
            request = self.waiting[0]
            if preempted or not self.blocks.fits(request.tokens):
                break
            self.blocks.begin(request.id, request.tokens)
            stop = min(len(request.tokens), budget)
            self.room(request, stop)
            self.running.append(self.waiting.pop(0))
            budget -= stop
            work.append((request, stop))
        for request, stop in work:
            self.compute(request, stop)

    def room(self, request, stop):
        try:
            self.blocks.reserve(request.id, request.computed, stop)
        except OutOfBlocks:
            return False
        return True

    def preempt(self):
        request = self.running.pop()
        self.blocks.release(request.id)
        request.computed = 0
        self.waiting.insert(0, request)

    def compute(self, request, stop):
        table = self.blocks.table(request.id).blocks
        start, request.computed = request.computed, stop
        token = self.model.compute(table, request.tokens, start, stop)
        self.blocks.commit(request.id, request.tokens, stop)
        if stop >= len(request.prompt):
            request.tokens.append(token)
        if not request.left:
            self.running.remove(request)
            self.blocks.release(request.id)

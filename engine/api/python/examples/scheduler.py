"""Continuous batching for serve.py: which tokens the ranks compute in the next step (Yu et al., Orca,
2022; prompts in pieces as in Agrawal et al., Sarathi, 2023)."""

import collections
import threading
import time

PLACES, TOKENS, LONGEST = 16, 128, 128  # requests under way, tokens of a step, tokens of a request


class Request:
    def __init__(self, prompt, wanted):
        self.tokens, self.wanted, self.done = list(prompt), wanted, 0
        self.came, self.times, self.lost, self.over = time.perf_counter(), [], False, threading.Event()

    def answer(self):
        return self.tokens[len(self.tokens) - len(self.times) :]


class Scheduler:
    def __init__(self):
        self.waiting, self.running, self.free = collections.deque(), [], list(range(PLACES))

    def next(self):
        """Returns the pieces of the next step, (place, position, tokens, 1 if it wants a token), and their tokens.
        An earlier request comes first, and if its prompt is computed it has one token."""
        while self.waiting and self.free:
            self.running.append(self.waiting.popleft())
            self.running[-1].place = self.free.pop()
        pieces, tokens = [], []
        for request in self.running:
            now = min(len(request.tokens) - request.done, TOKENS - len(tokens))
            request.wants = now > 0 and request.done + now == len(request.tokens)
            if now > 0:
                pieces.append((request.place, request.done, now, request.wants))
                tokens += request.tokens[request.done : request.done + now]
                request.done += now
        return pieces, tokens

    def take(self, tokens):
        """Hands out the tokens of a step. Returns the number of requests that are answered now."""
        before = len(self.running)
        for request, token in zip([request for request in self.running if request.wants], tokens):
            request.tokens.append(token)
            request.times.append(time.perf_counter())
            if len(request.times) == request.wanted:
                self.running.remove(request)
                self.free.append(request.place)
                request.over.set()
        return before - len(self.running)

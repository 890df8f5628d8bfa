import queue
import threading
import time
import zlib

import torch


class Crawler:
    def __init__(self, threads):
        self.threads, self.pages, self.todo = threads, [], queue.Queue()

    def fetch(self, address):
        time.sleep(0.002)
        number = zlib.crc32(address.encode())
        return torch.tensor([number >> shift & 255 for shift in (0, 8, 16, 24)]) / 255, number % 2

    def work(self):
        while True:
            try:
                address = self.todo.get_nowait()
            except queue.Empty:
                return
            self.pages.append(self.fetch(address))

    def crawl(self, addresses):
        for address in addresses:
            self.todo.put(address)
        threads = [threading.Thread(target=self.work) for _ in range(self.threads)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return self.pages

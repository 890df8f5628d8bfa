import asyncio
import math
import time


def blocking_read(number):
    time.sleep(0.001)
    return [math.sin(number), math.cos(number), math.sin(2 * number)]


async def download(number):
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(None, blocking_read, number)

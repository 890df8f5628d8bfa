import asyncio
import sys


class Client:
    """Asks a server, which is another process."""

    def __init__(self):
        self.limit = asyncio.Semaphore(4)

    async def get(self, number):
        async with self.limit:
            code = f"print({number} % 3, {number} % 5, {number} / 16)"
            process = await asyncio.create_subprocess_exec(sys.executable, "-S", "-E", "-c", code,
                                                           stdout=asyncio.subprocess.PIPE)
            answer, _ = await process.communicate()
        return [float(one) for one in answer.split()]

const encoder = new TextEncoder()

/**
 * An answer of JSON objects, one a line, which are read as the caller reads them. An error cuts it: the last line has the type `end`, and
 * how many lines of each type were before it.
 */
export function lineAnswer(parts: AsyncGenerator<{ type: string }>): Response {
  const counts: Record<string, number> = {}
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await parts.next()
        const line = done ? { type: 'end', data: counts } : value
        if (!done) counts[value.type] = (counts[value.type] ?? 0) + 1
        controller.enqueue(encoder.encode(`${JSON.stringify(line)}\n`))
        if (done) controller.close()
      },
      async cancel() {
        await parts.return(undefined)
      },
    },
    { highWaterMark: 0 },
  )
  return new Response(body, {
    headers: { 'content-type': 'application/x-ndjson', 'cache-control': 'no-store' },
  })
}

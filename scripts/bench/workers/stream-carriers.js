// Ways in which a Worker can carry a stream, each without anything else: the least that a gateway built on it costs. The
// header `x-carrier` chooses one.

const BETWEEN_WRITES_MS = 10

const carriers = {
  'runtime, no copy': (response) => response.body,

  /** As src/gateway/relay/native-passage.ts: one copy to read the usage from, one to measure what the caller has read. */
  'runtime, two copies': (response, context) => {
    const [passing, copy] = response.body.tee()
    const { readable, writable } = new IdentityTransformStream()
    const [body, readCopy] = readable.tee()
    const read = async () => {
      await passing.pipeTo(writable)
      readCopy.cancel()
      await new Response(copy).arrayBuffer()
    }
    context.waitUntil(read())
    return body
  },

  'runtime, one copy': (response, context) => {
    const [passing, copy] = response.body.tee()
    const { readable, writable } = new IdentityTransformStream()
    const read = async () => {
      await passing.pipeTo(writable)
      await new Response(copy).arrayBuffer()
    }
    context.waitUntil(read())
    return readable
  },

  'code, one write at the end': (response, context) =>
    relayed(response.body, Number.POSITIVE_INFINITY, context),

  /** As src/gateway/relay/stream-caller.ts, without reading what is in the events. */
  'code, writes 10 ms apart': (response, context) => relayed(response.body, BETWEEN_WRITES_MS, context),

  'code, a write for each chunk': (response, context) => relayed(response.body, 0, context),
}

/** @param pause milliseconds from one write to the next. */
function relayed(upstream, pause, context) {
  const { readable, writable } = new IdentityTransformStream()
  const writer = writable.getWriter()
  const held = []
  let timer
  let writtenAt = 0
  const write = () => {
    clearTimeout(timer)
    timer = undefined
    writtenAt = Date.now()
    if (held.length > 0) writer.write(joined(held.splice(0)))
  }
  const relay = async () => {
    const reader = upstream.getReader()
    for (let read = await reader.read(); !read.done; read = await reader.read()) {
      held.push(read.value)
      const wait = pause - (Date.now() - writtenAt)
      if (wait <= 0) write()
      else if (wait !== Number.POSITIVE_INFINITY) timer ??= setTimeout(write, wait)
    }
    write()
    await writer.close()
  }
  context.waitUntil(relay())
  return readable
}

function joined(chunks) {
  const bytes = new Uint8Array(chunks.reduce((length, chunk) => length + chunk.length, 0))
  let at = 0
  for (const chunk of chunks) {
    bytes.set(chunk, at)
    at += chunk.length
  }
  return bytes
}

const worker = {
  async fetch(request, environment, context) {
    const { pathname, search } = new URL(request.url)
    const response = await fetch(new Request(environment.UPSTREAM + pathname + search, request))
    const carrier = carriers[request.headers.get('x-carrier')]
    return new Response(carrier(response, context), response)
  },
}

// biome-ignore lint/style/noDefaultExport: the runtime takes a Worker's handlers from its default export
export default worker

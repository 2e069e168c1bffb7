import { type Calls, RESPONSE_ENDING } from './calls.ts'
import { openStream, StreamReader, type StreamResult } from './stream-call.ts'

/** A response that generates while its caller reads it. */
export interface RunningResponse {
  id: string
  /** What its caller got so far. */
  received: Pick<StreamReader, 'events' | 'bytes'>
  /** Reads to the end. @throws BenchFailure unless the response completes */
  end(): Promise<StreamResult>
}

/**
 * Begins a response. Its events are read as they come, whether or not its end is waited for.
 *
 * @param script what the upstream plays
 * @throws BenchFailure when it does not begin
 */
export async function beginResponse(calls: Calls, script: string): Promise<RunningResponse> {
  const begin = performance.now()
  const { answer } = await openStream(calls.response(script))
  const id = Promise.withResolvers<string>()
  const reader = new StreamReader(begin)
  const read = async (): Promise<StreamResult> => {
    for await (const bytes of answer) {
      reader.take(bytes as Buffer)
      const found = /"id":"(resp_[^"]+)"/.exec(reader.head)?.[1]
      if (found !== undefined) id.resolve(found)
    }
    return reader.result(RESPONSE_ENDING)
  }
  const whole = read()
  whole.catch((error) => id.reject(error))
  return { id: await id.promise, received: reader, end: () => whole }
}

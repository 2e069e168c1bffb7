import type { BenchSystem } from '../system.ts'
import { Calls, RESPONSE_ENDING } from './calls.ts'
import { beginResponse } from './running-response.ts'
import { callStream, type StreamRequest } from './stream-call.ts'

/** Something that the gateway is profiled at. */
export interface ResponsesLoad {
  name: string
  title: string
  /** Makes calls for about so many milliseconds. @returns how many */
  run(milliseconds: number): Promise<number>
}

/** What is profiled of responses: their beginnings, their events, their replay. Each call is made after the one before. */
export async function responsesLoads(system: BenchSystem): Promise<ResponsesLoad[]> {
  const calls = new Calls(system)
  const ended = await beginResponse(calls, 'long-stream tokens=10000')
  await ended.end()
  const load = (name: string, title: string, request: StreamRequest): ResponsesLoad => ({
    name: `responses-${name}`,
    title: `responses, ${title}`,
    async run(milliseconds) {
      const end = performance.now() + milliseconds
      let made = 0
      for (; performance.now() < end; made += 1) await callStream(request, RESPONSE_ENDING)
      return made
    },
  })
  return [
    load('begin', 'one of 5 deltas', calls.response('long-stream tokens=5')),
    load('events', 'one of 10,000 deltas', calls.response('long-stream tokens=10000')),
    load('replay', 'a replay of 10,000 deltas', calls.replay(ended.id)),
  ]
}

import { createChatFrames, roleDelta, streamEnd } from '../../local/model-upstream/chat-frames.ts'
import { BenchFailure } from '../measure.ts'

/** How an upstream sends its answer. */
export interface Pace {
  /** Deltas at once at its beginning. */
  burst?: number
  /** Deltas a second after that, and for how long. */
  rate: number
  seconds: number
}

/** The upstream's clock ticks in milliseconds, so that higher rates come as groups. */
const MOST_GROUPS_PER_SECOND = 200

/** Registers a script at the model upstream. @returns its name. @throws BenchFailure when it is refused */
export async function registerPaced(upstream: string, name: string, pace: Pace): Promise<string> {
  const { burst = 0, rate, seconds } = pace
  const groups = Math.min(rate, MOST_GROUPS_PER_SECOND)
  const frames = createChatFrames('scripted-chat', false)
  const delta = frames.text(0, ' word')
  const group = { sse: Array.from({ length: rate / groups }, () => delta) }
  const pause = { waitMilliseconds: 1_000 / groups }
  const steps = [
    { sse: [frames.choice(0, roleDelta)] },
    ...(burst > 0 ? [{ stream: delta.repeat(burst) }] : []),
    ...Array.from({ length: Math.ceil(groups * seconds) }, () => [group, pause]).flat(),
    { sse: [frames.finish(0, 'stop'), streamEnd] },
  ]
  const url = `${upstream}/control/scripts/${name}`
  const response = await fetch(url, { method: 'PUT', body: JSON.stringify({ steps }) })
  if (!response.ok) throw new BenchFailure(`registering ${name}: status ${response.status}`)
  return name
}

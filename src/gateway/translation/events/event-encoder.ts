import { encodeFrame } from '../../../lib/sse.ts'
import type { EventEncoder, ModelEvent } from '../model-events.ts'

/** Tells events as they are, a frame each, to those who make items of them. They always ask for streams. */
export class ModelEventEncoder implements EventEncoder {
  frames(event: ModelEvent): Uint8Array[] {
    return [encodeFrame(null, event)]
  }

  answer(): never {
    throw new Error('events are told one by one')
  }
}

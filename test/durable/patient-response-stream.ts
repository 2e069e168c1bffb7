import type { Bindings } from '../../src/env.ts'
import { ResponseStream } from '../../workers/response-stream.ts'

/** The object of a response that waits for its model to answer before it begins. */
export class PatientResponseStream extends ResponseStream {
  constructor(context: DurableObjectState, environment: Bindings) {
    super(context, { ...environment, RESPONSE_COMMIT_MS: '5000' } as Bindings)
  }
}

import type { Bindings } from '../../src/env.ts'
import { ResponsePool } from '../../workers/response-pool.ts'
import { ResponseStream } from '../../workers/response-stream.ts'

const PATIENT = { RESPONSE_COMMIT_MS: '5000' }

/** The object of a response that waits for its model to answer before it begins. */
export class PatientResponseStream extends ResponseStream {
  constructor(context: DurableObjectState, environment: Bindings) {
    super(context, { ...environment, ...PATIENT } as Bindings)
  }
}

/** The same for many responses. */
export class PatientResponsePool extends ResponsePool {
  constructor(context: DurableObjectState, environment: Bindings) {
    super(context, { ...environment, ...PATIENT } as Bindings)
  }
}

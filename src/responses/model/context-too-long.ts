import { ApiError } from '../../lib/api-error.ts'
/** @param most the limit of a context, such as `20000 items`. */
export const contextTooLong = (most: string) =>
  new ApiError(
    'invalid_request',
    `The conversation is longer than the ${most} that can be sent to a model. Begin a new one.`,
    { code: 'context_length_exceeded' },
  )

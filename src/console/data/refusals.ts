import { Refusal } from '../../client/management-client.ts'

/** Whether asking again would give the same answer. */
export const isFinalRefusal = (error: unknown): boolean =>
  error instanceof Refusal && error.status < 500 && error.status !== 429

/** Whether a request failed since nobody is signed in. */
export const isSignedOut = (error: unknown): boolean => error instanceof Refusal && error.status === 401

/** The code of a refusal, such as `setup_link_unusable`. */
export const codeOf = (error: unknown): string | undefined =>
  error instanceof Refusal && typeof error.details.code === 'string' ? error.details.code : undefined

import { FORWARDED_NAMES } from '../providers/forwarded-headers.ts'
import { SESSION_HEADERS } from './conversation-key.ts'

const NAMES = [...new Set([...FORWARDED_NAMES, ...SESSION_HEADERS])]

/** The headers of a caller that a call of a model uses: those that a provider receives, and those that name a session. */
export const callerHeaders = (headers: Headers): Array<[name: string, value: string]> =>
  NAMES.flatMap((name) => {
    const value = headers.get(name)
    return value === null ? [] : [[name, value] as [string, string]]
  })

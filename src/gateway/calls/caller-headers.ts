import { FORWARDED_NAMES } from '../providers/forwarded-headers.ts'

/** The headers of a caller that a call of a model uses: those that a provider receives. */
export const callerHeaders = (headers: Headers): Array<[name: string, value: string]> =>
  FORWARDED_NAMES.flatMap((name) => {
    const value = headers.get(name)
    return value === null ? [] : [[name, value] as [string, string]]
  })

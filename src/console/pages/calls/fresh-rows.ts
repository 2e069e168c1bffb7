import { useEffect, useState } from 'react'
import type { Call } from '../../data/outcomes.ts'

/** Rows that come while somebody has scrolled wait until they are asked for: nothing moves under the pointer. */
export function useHeldBack(closed: readonly Call[]) {
  const [shownCount, setShownCount] = useState(0)
  useEffect(() => {
    const follow = () => {
      if (scrollY < 80) setShownCount(closed.length)
    }
    follow()
    addEventListener('scroll', follow, { passive: true })
    return () => removeEventListener('scroll', follow)
  }, [closed.length])
  const hidden = Math.max(0, closed.length - shownCount)
  return {
    shown: closed.slice(hidden),
    hidden,
    showAll: () => {
      setShownCount(closed.length)
      scrollTo({ top: 0 })
    },
  }
}

/** How many of the new rows somebody has looked at: all, once anything is pressed or scrolled. */
export function useSeenCount(freshCount: number): number {
  const [seen, setSeen] = useState(freshCount)
  useEffect(() => {
    const look = () => setSeen(freshCount)
    const events = ['pointerdown', 'keydown', 'scroll'] as const
    for (const event of events) addEventListener(event, look, { passive: true })
    return () => {
      for (const event of events) removeEventListener(event, look)
    }
  }, [freshCount])
  return seen
}

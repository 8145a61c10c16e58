"""What people say of a tournament's texts: how they are asked, what they said, and how judges agree with it."""
